"""What compiled code needs: decorators and their cache, tables of arrays, random streams, prefetching."""
