#include "certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <catch2/catch.hpp>
#include <memory>

namespace tacho::web::test {
namespace {

template <auto free_function>
struct Freeing {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Bio = std::unique_ptr<BIO, Freeing<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freeing<X509_EXTENSION_free>>;

template <class Write>
std::string pem(const Write& write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  REQUIRE(write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

template <class Read>
auto from_pem(const std::string& text, const Read& read) {
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return read(bio.get(), nullptr, nullptr, nullptr);
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  REQUIRE(extension);
  X509_add_ext(certificate, extension.get(), -1);
}

Certificate blank(const std::string& name, EVP_PKEY* key, int days) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  const long day = 24L * 3600;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * day);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * day);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

Identity finish(X509* certificate, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  REQUIRE(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
  return {
      .certificate = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }),
      .key = pem([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
}

}  // namespace

Authority::Authority(const std::string& name) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = blank(name, key.get(), 1);
  extend(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  identity_ = finish(certificate.get(), key.get(), certificate.get(), key.get());
}

Identity Authority::issue(const std::string& common_name, const std::string& names, bool for_client, int days) const {
  const Certificate issuer(from_pem(identity_.certificate, PEM_read_bio_X509));
  const Key issuer_key(from_pem(identity_.key, PEM_read_bio_PrivateKey));
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = blank(common_name, key.get(), days);
  extend(certificate.get(), issuer.get(), NID_subject_alt_name, names);
  extend(certificate.get(), issuer.get(), NID_ext_key_usage, for_client ? "clientAuth" : "serverAuth");
  return finish(certificate.get(), key.get(), issuer.get(), issuer_key.get());
}

}  // namespace tacho::web::test
