package shelf // want "matching/shelf has no row in the layout: give it one"
