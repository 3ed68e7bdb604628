"""Speed and memory of the replay against a floor and against other libraries; never imported by backsweep itself."""
