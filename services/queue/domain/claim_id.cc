#include "services/queue/domain/claim_id.h"

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fmt/format.h>

namespace fluxqueue::queue {

std::string ClaimId(std::string_view pool, std::string_view client_id) {
  // Of our own making; it must never change, or a repeated call would be another claim.
  static const boost::uuids::uuid space =
      boost::uuids::string_generator()("6f8b1f5e-3c1d-5d0a-9a43-0d1f2c7be6a1");
  // A pool's name holds no line break, so no two pairs make one text.
  const std::string name = fmt::format("{}\n{}", pool, client_id);
  return boost::uuids::to_string(boost::uuids::name_generator_sha1(space)(name));
}

}  // namespace fluxqueue::queue
