-- The binder compares what it follows with the jobs that live, a page of job ids at a time: by the primary key it would
-- read all that have ended, too. A job leaves this index once, when it ends.
--
-- It reads all of the table.
SET LOCAL statement_timeout = 0;
CREATE INDEX jobs_live_by_id ON jobs (job_id) WHERE live;
