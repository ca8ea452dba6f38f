#pragma once

#include <string>

// Records of TLS, by type and length; what is in them nobody looks at.

namespace tacho::kernel_test {

/// A record of TLS: type, version 1.2, length and body (RFC 8446, 5.1).
inline std::string record(char type, const std::string& body) {
  return std::string{} + type + '\3' + '\3' + static_cast<char>(body.size() >> 8U) +
         static_cast<char>(body.size() & 0xffU) + body;
}

/// A message of a handshake in the clear: type, length and body (RFC 8446, 4).
inline std::string message(char type, const std::string& body) {
  return std::string{} + type + '\0' + static_cast<char>(body.size() >> 8U) + static_cast<char>(body.size() & 0xffU) +
         body;
}

inline const std::string kHello = record(22, message(1, std::string(296, 'h')));
inline const std::string kServerHello = record(22, message(2, std::string(118, 'h')));
inline const std::string kTicket12 = record(22, message(4, std::string(190, 't')));
inline const std::string kChangeCipherSpec = record(20, "\1");
inline const std::string kFinished = record(23, std::string(53, 'f'));
inline const std::string kKeyExchange = record(22, message(16, std::string(66, 'k')));
inline const std::string kCertificate12 = record(22, message(11, std::string(800, 'c')));
inline const std::string kNoCertificate12 = record(22, message(11, std::string(3, '\0')));
inline const std::string kVerify12 = record(22, message(15, std::string(260, 'v')));
inline const std::string kFinished12 = record(22, std::string(40, 'f'));
inline const std::string kRequest = record(23, std::string(120, 'q'));
/// As long as a goodbye under TLS 1.3, and a goodbye under TLS 1.2.
inline const std::string kShort = record(23, std::string(19, 's'));
inline const std::string kAlert = record(21, std::string(26, 'a'));
/// What a client's last flight under TLS 1.3 may be made of, beside Finished.
inline const std::string kCertificate = record(23, std::string(900, 'c'));
inline const std::string kNoCertificate = record(23, std::string(25, 'c'));
inline const std::string kVerify = record(23, std::string(97, 'v'));
/// A certificate that is asked for behind the handshake and that the client has not.
inline const std::string kNoProof = record(23, std::string(57, 'c'));
inline const std::string kKeyUpdate = record(23, std::string(22, 'k'));
inline const std::string kWholeFlight = record(23, std::string(1010, 'c'));
inline const std::string kEndOfEarlyData = record(23, std::string(21, 'e'));
inline const std::string kLongFinished = record(23, std::string(69, 'f'));
/// Of Java, which adds 16 bytes of nothing to each record: Finished, and what is as long as a goodbye.
inline const std::string kPaddedFinished = record(23, std::string(85, 'f'));
inline const std::string kPadded = record(23, std::string(35, 's'));

}  // namespace tacho::kernel_test
