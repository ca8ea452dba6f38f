#include "probes/socket_hooks.h"

#include <array>
#include <string_view>

namespace tacho::probes {
namespace {

using kernel::Alternative;
using kernel::Hook;
using Names = std::string_view;

constexpr std::array<Names, 1> kSend{"socket_send"};
constexpr std::array<Names, 1> kReceive{"socket_receive"};
constexpr std::array<Names, 1> kDataReady{"socket_data_ready"};
/// Each with a second chance, see bpf/socket_again.bpf.h.
constexpr std::array<Names, 2> kSendAgain{"socket_send", "socket_send_again"};
constexpr std::array<Names, 2> kReceiveAgain{"socket_receive", "socket_receive_again"};
constexpr std::array<Names, 2> kDataReadyAgain{"socket_data_ready", "socket_data_ready_again"};
constexpr std::array<Names, 1> kState{"socket_state_change"};
constexpr std::array<Names, 2> kStateAgain{"socket_state_change", "socket_state_change_again"};
/// The beginnings of MPTCP's replies: with what every plan has as a tracepoint.
constexpr std::array<Names, 1> kMptcpOut{"socket_mptcp_out"};
constexpr std::array<Names, 1> kRawState{"raw_socket_state_change"};
constexpr std::array<Names, 3> kOlder{"socket_list_ports", "socket_adopt", "socket_adopt_listeners"};
constexpr std::array<Names, 1> kOlderMore{"socket_list_own_ports"};
constexpr std::array<Names, 2> kSweep{"socket_sweep_datagrams", "socket_sweep_states"};
constexpr std::array<Names, 2> kSweepKeys{"socket_sweep_datagram_keys", "socket_sweep_state_keys"};
/// A socket is no key that user space knows.
constexpr std::array<Names, 2> kSweepFiles{"socket_sweep_datagram_keys", "socket_sweep_files"};

constexpr std::array<Names, 1> kFexitSend{"socket_fexit_inet_sendmsg"};
constexpr std::array<Names, 5> kFexitSendMore{"socket_fexit_inet6_sendmsg", "socket_fexit_unix_stream_sendmsg",
                                              "socket_fexit_unix_dgram_sendmsg", "socket_fexit_inet_sendpage",
                                              "socket_fexit_unix_stream_sendpage"};
/// Datagrams of unix sockets are received by a function of their own from 5.15 on; only one of both may be hooked.
constexpr std::array<Names, 2> kFexitReceive{"socket_fexit_inet_recvmsg", "socket_fexit___unix_dgram_recvmsg"};
constexpr auto kFexitReceiveOld = std::span(kFexitReceive).first(1);
constexpr std::array<Names, 6> kFexitReceiveMoreOld{
    "socket_fexit_unix_dgram_recvmsg", "socket_fexit_inet6_recvmsg",     "socket_fexit_unix_stream_recvmsg",
    "socket_fexit_tcp_splice_read",    "socket_fexit_mptcp_splice_read", "socket_fexit_unix_stream_splice_read"};
constexpr auto kFexitReceiveMore = std::span(kFexitReceiveMoreOld).subspan(1);
/// Receives that the tracepoint does not see. They may be interrupted, which it may not.
constexpr std::array<Names, 3> kSplice{"socket_fexit_tcp_splice_read", "socket_fexit_mptcp_splice_read",
                                       "socket_fexit_unix_stream_splice_read"};
constexpr std::array<Names, 1> kFentryDataReady{"socket_fentry_data_ready"};
constexpr std::array<Names, 1> kFentryClone{"socket_fentry_clone"};
constexpr std::array<Names, 1> kFentryGone{"socket_fentry_inet_gone"};
constexpr std::array<Names, 1> kFentryGoneMore{"socket_fentry_unix_gone"};

constexpr std::array<Names, 2> kKprobeSend{"socket_kretprobe_inet_sendmsg", "socket_kprobe_inet_sendmsg"};
constexpr std::array<Names, 10> kKprobeSendMore{
    "socket_kretprobe_inet6_sendmsg",    "socket_kprobe_inet6_sendmsg",         "socket_kretprobe_unix_stream_sendmsg",
    "socket_kprobe_unix_stream_sendmsg", "socket_kretprobe_unix_dgram_sendmsg", "socket_kprobe_unix_dgram_sendmsg",
    "socket_kretprobe_inet_sendpage",    "socket_kprobe_inet_sendpage",         "socket_kretprobe_unix_stream_sendpage",
    "socket_kprobe_unix_stream_sendpage"};
constexpr std::array<Names, 4> kKprobeReceive{"socket_kretprobe_inet_recvmsg", "socket_kprobe_inet_recvmsg",
                                              "socket_kretprobe___unix_dgram_recvmsg",
                                              "socket_kprobe___unix_dgram_recvmsg"};
constexpr auto kKprobeReceiveOld = std::span(kKprobeReceive).first(2);
constexpr std::array<Names, 12> kKprobeReceiveMoreOld{
    "socket_kretprobe_unix_dgram_recvmsg",      "socket_kprobe_unix_dgram_recvmsg",
    "socket_kretprobe_inet6_recvmsg",           "socket_kprobe_inet6_recvmsg",
    "socket_kretprobe_unix_stream_recvmsg",     "socket_kprobe_unix_stream_recvmsg",
    "socket_kretprobe_tcp_splice_read",         "socket_kprobe_tcp_splice_read",
    "socket_kretprobe_mptcp_splice_read",       "socket_kprobe_mptcp_splice_read",
    "socket_kretprobe_unix_stream_splice_read", "socket_kprobe_unix_stream_splice_read"};
constexpr auto kKprobeReceiveMore = std::span(kKprobeReceiveMoreOld).subspan(2);
constexpr std::array<Names, 1> kKprobeDataReady{"socket_kprobe_data_ready"};
constexpr std::array<Names, 1> kKprobeClone{"socket_kprobe_clone"};
constexpr std::array<Names, 1> kKprobeGone{"socket_kprobe_inet_gone"};
constexpr std::array<Names, 1> kKprobeGoneMore{"socket_kprobe_unix_gone"};

constexpr Alternative kTpSend{"tp_btf", kSend};
constexpr Alternative kTpReceive{"tp_btf", kReceive};
constexpr Alternative kTpDataReady{"tp_btf", kDataReady};
constexpr Alternative kFunctionSend{"fentry", kFexitSend, kFexitSendMore};
constexpr Alternative kFunctionReceive{"fentry", kFexitReceive, kFexitReceiveMore};
constexpr Alternative kFunctionReceiveOld{"fentry", kFexitReceiveOld, kFexitReceiveMoreOld};
constexpr Alternative kFunctionDataReady{"fentry", kFentryDataReady};

constexpr std::array kStateWays{Alternative{"tp_btf", kState, kMptcpOut}};
constexpr std::array kBasicStateWays{Alternative{"tp_btf", kState, kMptcpOut},
                                     Alternative{"raw_tracepoint", kRawState}};
constexpr std::array kOlderWays{Alternative{"iterator", kOlder, kOlderMore}};
constexpr std::array kSweepWays{Alternative{"iterator", kSweep}, Alternative{"files", kSweepFiles}};
constexpr std::array kBasicSweepWays{Alternative{"iterator", kSweep}, Alternative{"keys", kSweepKeys}};
constexpr std::array kSendWays{kTpSend, kFunctionSend};
constexpr std::array kReceiveWays{kTpReceive, kFunctionReceive, kFunctionReceiveOld};
constexpr std::array kDataReadyWays{kTpDataReady, kFunctionDataReady};

/// The programs that take the verifier longest are two threads' work; the others have the maps and are short.
constexpr unsigned kSendPart = 1;
constexpr unsigned kReceivePart = 2;

/// Connections before operations: a socket that is born meanwhile keeps its role.
constexpr std::array kHooks{
    Hook{"state_change", kStateWays, kSendPart}, Hook{"data_ready", kDataReadyWays, kReceivePart},
    Hook{"receive", kReceiveWays, kReceivePart}, Hook{"send", kSendWays, kSendPart},
    Hook{"older_sockets", kOlderWays},           Hook{"sweep", kSweepWays}};

constexpr std::array kGoneWays{Alternative{"fentry", kFentryGone, kFentryGoneMore},
                               Alternative{"kprobe", kKprobeGone, kKprobeGoneMore}};
constexpr std::array kCloneWays{Alternative{"fentry", kFentryClone}, Alternative{"kprobe", kKprobeClone}};
constexpr std::array kBasicSendWays{kTpSend, kFunctionSend, Alternative{"kprobe", kKprobeSend, kKprobeSendMore}};
constexpr std::array kBasicReceiveWays{kTpReceive, kFunctionReceive, kFunctionReceiveOld,
                                       Alternative{"kprobe", kKprobeReceive, kKprobeReceiveMore},
                                       Alternative{"kprobe", kKprobeReceiveOld, kKprobeReceiveMoreOld}};
constexpr std::array kBasicDataReadyWays{kTpDataReady, kFunctionDataReady, Alternative{"kprobe", kKprobeDataReady}};

constexpr std::array kBasicHooks{Hook{"socket_gone", kGoneWays, kSendPart},
                                 Hook{"clone", kCloneWays, kSendPart},
                                 Hook{"state_change", kBasicStateWays, kSendPart},
                                 Hook{"data_ready", kBasicDataReadyWays, kReceivePart},
                                 Hook{"receive", kBasicReceiveWays, kReceivePart},
                                 Hook{"send", kBasicSendWays, kSendPart},
                                 Hook{"older_sockets", kOlderWays},
                                 Hook{"sweep", kBasicSweepWays}};

constexpr std::array kSpliceWays{Alternative{"fentry", {}, kSplice}};
constexpr std::array kSpliceHooks{Hook{"splice", kSpliceWays}};

constexpr std::array kSendAgainWays{Alternative{"tp_btf", kSendAgain}, kFunctionSend};
constexpr std::array kReceiveAgainWays{Alternative{"tp_btf", kReceiveAgain}, kFunctionReceive, kFunctionReceiveOld};
constexpr std::array kDataReadyAgainWays{Alternative{"tp_btf", kDataReadyAgain}, kFunctionDataReady};
constexpr std::array kStateAgainWays{Alternative{"tp_btf", kStateAgain, kMptcpOut}};
constexpr std::array kPreemptibleHooks{Hook{"state_change", kStateAgainWays, kSendPart},
                                       Hook{"data_ready", kDataReadyAgainWays, kReceivePart},
                                       Hook{"receive", kReceiveAgainWays, kReceivePart},
                                       Hook{"send", kSendAgainWays, kSendPart},
                                       Hook{"older_sockets", kOlderWays},
                                       Hook{"sweep", kSweepWays}};

}  // namespace

std::span<const kernel::Hook> socket_hooks(bool preemptible) {
  return preemptible ? std::span<const Hook>(kPreemptibleHooks) : kHooks;
}

std::span<const kernel::Hook> socket_basic_hooks() {
  return kBasicHooks;
}

std::span<const kernel::Hook> splice_hooks() {
  return kSpliceHooks;
}

}  // namespace tacho::probes
