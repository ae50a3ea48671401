-- Where the holder of a partition answers calls about it, "host:port"; empty: it answers none.
ALTER TABLE inbox ADD COLUMN address text NOT NULL DEFAULT '';
