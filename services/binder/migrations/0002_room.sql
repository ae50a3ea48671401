-- Room on the page for what a row becomes: such an update touches no index.
ALTER TABLE jobs SET (fillfactor = 70);
ALTER TABLE slots SET (fillfactor = 50);
