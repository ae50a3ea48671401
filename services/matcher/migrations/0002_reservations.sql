-- What is promised to jobs that wait, as of the last cycle; `placement` starts when they are to start.
CREATE TABLE reservations (
  job_id text NOT NULL,
  attempt integer NOT NULL,
  part integer NOT NULL,
  pool text NOT NULL,
  placement bytea NOT NULL,
  PRIMARY KEY (job_id, attempt, part)
);
CREATE INDEX reservations_pool ON reservations (pool);
