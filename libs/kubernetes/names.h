// Names of Kubernetes objects, and how they get into a URL. A webhook sees an object before the API
// server has validated it: what stands where a name belongs may be anything. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace fluxqueue::kubernetes {

// As namespaces are named: up to 63 of a-z, 0-9 and '-', a letter or digit at both ends (a label of
// DNS, RFC 1123).
bool IsDnsLabel(std::string_view text);
// As most other objects are: labels joined by '.', up to 253 in all.
bool IsDnsSubdomain(std::string_view text);

// The text as one segment of a URL's path, whatever it is: it can neither end the segment nor climb
// out of it.
std::string PathSegment(std::string_view text);

}  // namespace fluxqueue::kubernetes
