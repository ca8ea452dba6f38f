# The image of tacho: the program, the shared libraries it needs, and nothing else: no shell, no package manager.
#
# README, "In a container", has the commands that build and run it, and says what each part of them is for.

# Any Debian 12 that has apt. A tag may be another image tomorrow: who wants to know which one it was names a digest,
# --build-arg BASE=debian:bookworm-slim@sha256:…, and with --build-arg BASE_BY_DIGEST=1 nothing else is taken. The image
# says what it was built on (org.opencontainers.image.base.name); none of the base is in it but the libraries that it needs.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
ARG BASE
ARG BASE_BY_DIGEST=
WORKDIR /source
COPY deploy/image/check-base deploy/image/
RUN deploy/image/check-base "${BASE}" "${BASE_BY_DIGEST}"
# The packages first: they change less often than the sources.
COPY deploy/install-deps deploy/
RUN deploy/install-deps build
# What is compiled and nothing else (.dockerignore leaves documents out): a change elsewhere does not compile it anew.
COPY CMakeLists.txt CMakePresets.json ./
COPY bpf/ bpf/
COPY exporter/ exporter/
COPY deploy/package/CMakeLists.txt deploy/package/inventory deploy/package/
RUN cmake --preset release -DTACHO_BUILD_TESTS=OFF && cmake --build --preset release --target tacho
# What is in it, and the notices of that.
COPY LICENSE ./
RUN cmake --build --preset release --target inventory
COPY deploy/image/collect deploy/image/
RUN deploy/image/collect build/release/tacho /image

FROM scratch
COPY --from=build /image /
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tacho" \
      org.opencontainers.image.description="A tachometer for servers: requests per container, counted in the kernel" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# uid 0 since others would not get the capabilities; what it may do is in the capabilities that are granted.
USER 0:0
EXPOSE 9435
# Kubernetes asks by HTTP and ignores this; an image in OCI's format has no place for it (podman: --format docker).
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/tacho", "health"]
ENTRYPOINT ["/usr/bin/tacho"]
