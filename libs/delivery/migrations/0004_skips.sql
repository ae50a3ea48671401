-- Messages that an operator has had left out (fluxqueue log skip): the loop takes each for a dead letter, unread. Read when
-- a partition is claimed, and while batches fail.
CREATE TABLE skips (
  partition int NOT NULL,
  at_offset bigint NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  PRIMARY KEY (partition, at_offset)
);
