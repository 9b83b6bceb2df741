/** Sends malformed or incomplete multipart forms, and collects uncaught errors. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { TestApp } from './app.ts'
import { FORM_TYPE } from './files.ts'
import { parseRawResponse, RawConnection, toRequest } from './raw-connection.ts'

/** The framing of the body; with the last two values, the client ends the connection before the body ends. */
export type Framing = 'length' | 'chunked' | 'half-closed' | 'reset'

export interface SentForm {
  readonly body: Buffer
  /** Sizes of the chunks in bytes, repeated until the body ends; the server reads each chunk separately. */
  readonly pieceSizes: readonly number[]
  readonly framing: Framing
}

/** Collects uncaught errors, which would stop a server process, until the test ends. */
export function collectUncaught(): readonly unknown[] {
  const errors: unknown[] = []
  const collect = (error: unknown) => void errors.push(error)
  process.on('uncaughtExceptionMonitor', collect)
  onTestFinished(() => void process.off('uncaughtExceptionMonitor', collect))
  return errors
}

/** Sends a form to `POST /v1/files`; returns the response, or undefined if the server sends none. */
export async function sendForm(
  app: Pick<TestApp, 'url' | 'key'>,
  { body, pieceSizes, framing }: SentForm,
): Promise<ReturnType<typeof parseRawResponse> | undefined> {
  const connection = await RawConnection.open(app)
  connection.send(
    toRequest('POST /v1/files', [
      'Host: x',
      `Authorization: Bearer ${app.key}`,
      `Content-Type: ${FORM_TYPE}`,
      framing === 'chunked'
        ? 'Transfer-Encoding: chunked'
        : `Content-Length: ${body.length + (framing === 'length' ? 0 : 100)}`,
      'Connection: close',
    ]),
  )
  for (const piece of split(body, pieceSizes)) {
    const frame = framing === 'chunked' ? [`${piece.length.toString(16)}\r\n`, piece, '\r\n'] : [piece]
    connection.send(Buffer.concat(frame.map((part) => Buffer.from(part))))
    await nextTurn()
  }
  if (framing === 'chunked') connection.send('0\r\n\r\n')
  if (framing === 'half-closed') connection.endSending()
  if (framing === 'reset') connection.reset()
  const answer = await connection.ends()
  return answer === '' ? undefined : parseRawResponse(answer)
}

function* split(bytes: Buffer, sizes: readonly number[]): Iterable<Buffer> {
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? bytes.length
    yield bytes.subarray(at, at + size)
    at += size
  }
}
