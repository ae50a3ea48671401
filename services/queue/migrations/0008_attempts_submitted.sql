-- Lists of jobs by time (libs/job_store/attempt_store.h): which attempts of a later month had been submitted before a
-- moment. A few kilobytes a month; an insert hardly ever touches it.
--
-- It reads all of the table: two minutes for 100 million rows.
SET LOCAL statement_timeout = 0;
CREATE INDEX attempts_submitted ON attempts USING brin (submitted_ms) WITH (autosummarize = on);
