-- A batch changes most rows of a page at once: each finds room for its next version beside it, and no index changes.
ALTER TABLE jobs SET (fillfactor = 45);
