package rates // want "package name common says nothing"
