#include "web/client_names.h"

#include <arpa/inet.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace tacho::web {
namespace {

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string_view bytes(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address(std::string_view packed) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = packed.size() == sizeof(in6_addr) ? AF_INET6 : AF_INET;
  if (family == AF_INET && packed.size() != sizeof(in_addr)) {
    return {};
  }
  ::inet_ntop(family, packed.data(), text.data(), text.size());
  return text.data();
}

std::string text_of(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  switch (type) {
    case GEN_DNS:
    case GEN_EMAIL:
    case GEN_URI:
      return std::string(bytes(static_cast<const ASN1_STRING*>(value)));
    case GEN_IPADD:
      return address(bytes(static_cast<const ASN1_STRING*>(value)));
    default:
      return {};
  }
}

bool has_allowed_name(X509* certificate, const std::vector<std::string>& allowed) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string name = text_of(sk_GENERAL_NAME_value(names.get(), i));
    if (!name.empty() && std::ranges::find(allowed, name) != allowed.end()) {
      return true;
    }
  }
  return false;
}

int verify(X509_STORE_CTX* store, void* data) {
  const auto& rules = *static_cast<const ClientRules*>(data);
  if (rules.verify_chain && X509_verify_cert(store) != 1) {
    return 0;
  }
  if (!rules.allowed_names.empty() && !has_allowed_name(X509_STORE_CTX_get0_cert(store), rules.allowed_names)) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
  }
  if (!rules.verify_chain) {
    X509_STORE_CTX_set_error(store, X509_V_OK);
  }
  return 1;
}

/// Connections may outlive the server's hold on the context: the rules go with the context's last reference.
void free_rules(void* /*parent*/, void* rules, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*argl*/, void* /*argp*/) {
  delete static_cast<ClientRules*>(rules);
}

int rules_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_rules);
  return index;
}

}  // namespace

void check_clients(SSL_CTX* context, ClientRules rules) {
  auto owned = std::make_unique<ClientRules>(std::move(rules));
  SSL_CTX_set_cert_verify_callback(context, verify, owned.get());
  SSL_CTX_set_ex_data(context, rules_index(), owned.release());
}

bool verifies_clients(const SSL* ssl) {
  const auto* const rules = static_cast<const ClientRules*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), rules_index()));
  return rules != nullptr && rules->verify_chain;
}

}  // namespace tacho::web
