# The image of compose.yaml: signoff with what a team of workers needs, and none of the agents'
# programs. To add one, start from this image and install it; log in with a volume or a secret.
FROM python:3.12.12-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12.12-slim-bookworm
COPY --from=build /wheels /wheels
RUN for wheel in /wheels/*.whl; do \
        pip install --no-cache-dir "$wheel[postgres,temporal,web,mcp,anthropic,openai]" || exit 1; \
    done && rm -r /wheels && useradd --create-home --uid 1000 signoff
USER signoff
WORKDIR /project
ENTRYPOINT ["signoff"]
CMD ["--help"]
