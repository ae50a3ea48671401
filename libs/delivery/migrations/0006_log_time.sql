-- The log's time (libs/model/log_time.h), where append_ms is the latest that a broker has said: that may be ahead of it.
ALTER TABLE inbox ADD COLUMN log_ms bigint NOT NULL DEFAULT 0;
UPDATE inbox SET log_ms = append_ms;
