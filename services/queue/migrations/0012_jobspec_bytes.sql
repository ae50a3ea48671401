-- What the jobspecs of a user's claims, and of a namespace's jobs, come to (spec.claimBytes and spec.namespaceQuota of
-- FluxQueues).
ALTER TABLE jobs ADD COLUMN jobspec_bytes bigint NOT NULL DEFAULT 0;
DROP INDEX jobs_live_claims;
CREATE INDEX jobs_live_claims ON jobs (username) INCLUDE (jobspec_bytes) WHERE live AND kind = 'Claim';
