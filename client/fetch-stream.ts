/** Ends streams that receive no bytes, because a lost connection may never report its end. */

/** Milliseconds after which a stream without bytes counts as lost; the server sends a ping every 15 s. */
const SILENCE_MS = 40_000

/** Like `fetch`, but fails if the server is silent for too long, before or after the response's headers. */
export async function fetchStream(...[url, init]: Parameters<typeof fetch>): Promise<Response> {
  const silent = new AbortController()
  const signals = [silent.signal, ...(init?.signal ? [init.signal] : [])]
  const timer = setTimeout(() => silent.abort(), SILENCE_MS)
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.any(signals) })
    return response.body === null ? response : new Response(limitSilence(response.body), response)
  } finally {
    clearTimeout(timer)
  }
}

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>

/** Returns a stream of the same bytes, which fails after a read that takes too long. */
function limitSilence(bytes: Bytes): Bytes {
  const reader = bytes.getReader()
  return new ReadableStream({
    async pull(controller) {
      const timer = setTimeout(() => {
        controller.error(new Error('The server was silent for too long.'))
        void reader.cancel().catch(() => undefined)
      }, SILENCE_MS)
      try {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      } finally {
        clearTimeout(timer)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
