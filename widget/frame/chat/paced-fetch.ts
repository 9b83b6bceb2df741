/**
 * Slows down the reading of fast responses, because a server can send text faster than the window can render
 * it.
 */

/** Maximum size of one piece in bytes: a few dozen chunks of a typical response. */
const PIECE_BYTES = 4096
/** Maximum time that the reader may block the thread, in milliseconds. */
const BUSY_MS = 8

/**
 * Works like `fetch`, but delivers the body in small pieces with pauses between them. Calls `onByte` whenever
 * bytes arrive.
 */
export async function pacedFetch(
  input: RequestInfo | URL | string,
  init?: RequestInit,
  onByte?: () => void,
): Promise<Response> {
  const response = await fetch(input, init)
  if (response.body === null) return response
  const { status, statusText, headers } = response
  return new Response(paced(response.body, onByte), { status, statusText, headers })
}

function paced(body: ReadableStream<Uint8Array>, onByte?: () => void): ReadableStream<Uint8Array> {
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
          onByte?.()
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

/** Waits for a new task, so that the browser can handle input and paint before it. */
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
