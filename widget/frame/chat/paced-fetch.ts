/** Fetches so that reading a fast answer leaves the window time to be used: a server can send faster than text can be shown. */

/** Handed on at once: some dozen chunks of an answer. */
const PIECE_BYTES = 4096
/** How long the reader may keep the thread before others have their turn. */
const BUSY_MS = 8

/** `fetch`, with a body that comes in small pieces and with pauses between them. */
export async function pacedFetch(input: RequestInfo | URL | string, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
  if (response.body === null) return response
  const { status, statusText, headers } = response
  return new Response(paced(response.body), { status, statusText, headers })
}

function paced(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let piece = new Uint8Array(0)
  let startedAt = performance.now()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (performance.now() - startedAt > BUSY_MS) {
          await nextTask()
          startedAt = performance.now()
        }
        if (piece.length === 0) {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          piece = new Uint8Array(value)
        }
        controller.enqueue(piece.subarray(0, PIECE_BYTES))
        piece = piece.subarray(PIECE_BYTES)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Input and painting come before it. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}
