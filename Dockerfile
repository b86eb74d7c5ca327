# The sidecar, and nothing else: docker build --build-arg VERSION=0.1.0 --tag rabbitmq-retry .
FROM --platform=$BUILDPLATFORM golang:1.25 AS build
ARG TARGETOS TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release.version=$VERSION" -o /rabbitmq-retry ./cmd/rabbitmq-retry

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /rabbitmq-retry /
ENV PATH=/
# A number: Kubernetes cannot know that a name is not root.
USER 65532:65532
ENTRYPOINT ["/rabbitmq-retry"]
CMD ["worker"]
