#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace tacho::web {

template <auto free_function>
struct Freeing {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Bio = std::unique_ptr<BIO, Freeing<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;

}  // namespace tacho::web
