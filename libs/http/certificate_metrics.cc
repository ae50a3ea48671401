#include "libs/http/certificate_metrics.h"

#include <chrono>
#include <vector>

#include "libs/http/certificate.h"

namespace fluxqueue::http {

void ExportCertificates(metrics::Registry& registry,
                        const std::string& service,
                        const std::map<std::string, std::string>& files) {
  registry.GaugesFrom(
      "fluxqueue_certificate_expiration_timestamp_seconds",
      "When a certificate is over, seconds since the Unix epoch.",
      {"component", "certificate"},
      [service, files] {
        std::vector<metrics::Sample> samples;
        for (const auto& [certificate, file] : files) {
          const auto end = CertificateEnd(file);
          if (!end.ok()) continue;
          samples.push_back({{{"component", service}, {"certificate", certificate}},
                             std::chrono::duration<double>(end->time_since_epoch()).count()});
        }
        return samples;
      });
}

}  // namespace fluxqueue::http
