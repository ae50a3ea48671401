-- What the policy packed expects (matcher.v1.Forecast): beside the row, which is written in each cycle.
ALTER TABLE pools ADD COLUMN forecast bytea NOT NULL DEFAULT '';
