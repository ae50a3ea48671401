-- The queue was seen to have the job: its submission is not lost, also once the queue has forgotten the job. Those from
-- before this version count as heard.
ALTER TABLE workloads ADD COLUMN heard boolean NOT NULL DEFAULT true;
ALTER TABLE workloads ALTER COLUMN heard SET DEFAULT false;
CREATE INDEX workloads_unheard ON workloads (uid) WHERE NOT heard;
