package ring











