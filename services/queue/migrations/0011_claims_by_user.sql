-- How many claims a user has (spec.claimQuota of FluxQueues).
CREATE INDEX jobs_live_claims ON jobs (username) WHERE live AND kind = 'Claim';
