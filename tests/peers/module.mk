# Independent judges: other people's programs and headers, fetched when they can be had.
