-- Jobs that lack nothing but nodes: the first of each queue. The binder says so in the status of their pods.
CREATE TABLE lack_nodes (
  job_id text PRIMARY KEY,
  pool text NOT NULL
);
