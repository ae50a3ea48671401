-- The ledger of promises: what a job was told of its start, one row for each change of it. Kept as long as the job's row.
CREATE TABLE promises (
  job_id text NOT NULL,
  version bigint NOT NULL,              -- of the job, that says it
  queue text NOT NULL,
  told_ms bigint NOT NULL,
  start_ms bigint,                      -- promised; where it was kept, real; NULL: the promise was withdrawn
  before_ms bigint,                     -- promised before; NULL: nothing was
  firm boolean NOT NULL,
  kept boolean NOT NULL,                -- the job was allocated
  cause text NOT NULL,                  -- why it is later, or withdrawn: node, window, ahead, overrun, command, plan; or ''
  cause_by text NOT NULL,               -- the node, the window or the job's id
  PRIMARY KEY (job_id, version)
);
