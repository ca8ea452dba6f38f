#include "tls_client.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <catch2/catch.hpp>

namespace tacho::web::test {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> memory(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Owned<X509> certificate(const std::string& pem) {
  return Owned<X509>(PEM_read_bio_X509(memory(pem).get(), nullptr, nullptr, nullptr));
}

Owned<SSL_CTX> make_context(const TlsOptions& options) {
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), certificate(options.authority).get());
  if (options.identity) {
    const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(memory(options.identity->key).get(), nullptr, nullptr, nullptr));
    REQUIRE(SSL_CTX_use_certificate(context.get(), certificate(options.identity->certificate).get()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1);
  }
  if (options.version != 0) {
    SSL_CTX_set_min_proto_version(context.get(), options.version);
    SSL_CTX_set_max_proto_version(context.get(), options.version);
  }
  if (!options.ciphers.empty()) {
    REQUIRE(SSL_CTX_set_cipher_list(context.get(), options.ciphers.c_str()) == 1);
  }
  return context;
}

std::string common_name(SSL* ssl) {
  const Owned<X509> peer(SSL_get1_peer_certificate(ssl));
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(peer.get()), NID_commonName, name.data(), name.size());
  return name.data();
}

}  // namespace

TlsReply tls_get(const std::string& address, const std::string& path, const TlsOptions& options) {
  const Client client(address);
  const Owned<SSL_CTX> context = make_context(options);
  const Owned<SSL> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), client.fd());
  X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), "127.0.0.1");
  const std::array<unsigned char, 12> offer{2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  SSL_set_alpn_protos(ssl.get(), offer.data(), offer.size());

  TlsReply result;
  result.shaken_hands = SSL_connect(ssl.get()) == 1;
  if (!result.shaken_hands) {
    return result;
  }
  result.subject = common_name(ssl.get());
  result.protocol = SSL_get_version(ssl.get());
  result.cipher = SSL_get_cipher_name(ssl.get());
  const unsigned char* alpn = nullptr;
  unsigned alpn_size = 0;
  SSL_get0_alpn_selected(ssl.get(), &alpn, &alpn_size);
  result.alpn.assign(alpn, alpn + alpn_size);

  const std::string request = get_request(path);
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  std::string bytes;
  std::array<char, 16384> chunk{};
  for (int count = 0; (count = SSL_read(ssl.get(), chunk.data(), chunk.size())) > 0;) {
    bytes.append(chunk.data(), static_cast<std::size_t>(count));
  }
  result.reply = Reply::parse(bytes);
  return result;
}

}  // namespace tacho::web::test
