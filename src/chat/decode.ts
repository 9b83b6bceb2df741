/** Reads a stream of the chat verb back as objects, for those who do not forward its bytes. */
import { dataOf, splitRun } from './event-reader.ts'
import type { ChatChunk } from './schema.ts'

/** The chunks each read of the backend brought. Leaving the iteration ends the stream. */
export async function* decodeRuns(
  runs: AsyncIterator<Uint8Array, void, void>,
): AsyncGenerator<ChatChunk[], void, void> {
  try {
    for (let run = await runs.next(); !run.done; run = await runs.next()) {
      yield [...splitRun(Buffer.from(run.value))].map((event) => JSON.parse(dataOf(event) as string))
    }
  } finally {
    await runs.return?.()
  }
}
