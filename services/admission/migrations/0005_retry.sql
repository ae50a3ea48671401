-- Whether a job that was rejected is to be handed in again: a hash of all that would be reason for it, as it was looked
-- at last (null: by a version that did not know it); and the version of the rejected job that was handed in again, as long
-- as the queue is not known to have followed (else 0).
ALTER TABLE workloads ADD COLUMN asked bigint;
ALTER TABLE workloads ADD COLUMN retried bigint NOT NULL DEFAULT 0;
