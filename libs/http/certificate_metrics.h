// When certificates are over, as the metric
// fluxqueue_certificate_expiration_timestamp_seconds{component, certificate}.
#pragma once

#include <map>
#include <string>

#include "libs/metrics/metrics.h"

namespace fluxqueue::http {

// `files`: what each certificate is for ("webhook") → its PEM file. They are read at each scrape,
// as who serves with one takes up a file that was renewed. One that is empty, or cannot be read,
// has no value.
void ExportCertificates(metrics::Registry& registry,
                        const std::string& service,
                        const std::map<std::string, std::string>& files);

}  // namespace fluxqueue::http
