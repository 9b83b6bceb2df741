/** Tests that concurrent requests for an upload do not corrupt its bytes or its offset. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { createRandom } from '../../support/random.ts'
import {
  type CreatedUpload,
  callUpload,
  createUpload,
  headUpload,
  patchUpload,
  readArtifact,
  readOffset,
  readStatus,
  waitForState,
} from '../../support/uploads.ts'

// Disk writes may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 ** 2
const PIECE_BYTES = 16 * 1024

function toBody(bytes: Buffer, failsHalfway: boolean): ReadableStream {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (failsHalfway && at >= bytes.length / 2) controller.error(new Error('the client has left'))
      else if (at >= bytes.length) controller.close()
      else controller.enqueue(bytes.subarray(at, at + PIECE_BYTES))
      at += PIECE_BYTES
    },
  })
}

/** Acts as a client that reads the offset and sends a random chunk until the upload is complete. */
async function sendRemaining(
  app: TestApp,
  begun: CreatedUpload,
  bytes: Buffer,
  random: () => number,
): Promise<Set<number>> {
  const statuses = new Set<number>()
  for (;;) {
    const offset = await readOffset(app, begun)
    if (offset === bytes.length) return statuses
    const piece = bytes.subarray(offset, offset + Math.ceil(random() * 8 * PIECE_BYTES))
    const answer = await patchUpload(app, begun, offset, toBody(piece, random() < 0.3)).catch(() => undefined)
    if (answer !== undefined) statuses.add(answer.status)
  }
}

describe('an upload that three clients send concurrently', () => {
  test('contains the correct bytes at the end, and its offset never decreases', async () => {
    const app = await startApp()
    const bytes = randomBytes(MIB)
    const begun = await createUpload(app, { size: bytes.length })
    const offsets: number[] = []
    let isOver = false
    const watching = (async () => {
      while (!isOver) {
        offsets.push(await readOffset(app, begun))
        const { bytesReceived } = await readStatus(app, begun.id)
        offsets.push(bytesReceived)
      }
    })()
    const random = createRandom(3)
    const clients = Array.from({ length: 3 }, () => sendRemaining(app, begun, bytes, random))
    const statuses = new Set((await Promise.all(clients)).flatMap((seen) => [...seen]))
    isOver = true
    await watching
    expect([...statuses].filter((status) => ![204, 409, 423].includes(status))).toEqual([])
    expect(offsets).toEqual(offsets.toSorted((one, other) => one - other))
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })
})

describe('an upload that is deleted while a client sends it', () => {
  test.each([1, 2, 3])(
    'is deleted once, and its id can be used again immediately (seed %i)',
    async (seed) => {
      const app = await startApp()
      const random = createRandom(seed)
      const bytes = randomBytes(2 * MIB)
      const begun = await createUpload(app, { size: bytes.length })
      const sending = patchUpload(app, begun, 0, toBody(bytes, false))
      const removed = Array.from({ length: 3 }, async () => {
        for (let remaining = random() * 8; remaining > 0; remaining--) await headUpload(app, begun)
        return (await callUpload(app, 'DELETE', begun.location)).status
      })
      const statuses = await Promise.all(removed)
      expect(statuses.filter((status) => status === 204)).toHaveLength(1)
      expect(statuses.filter((status) => status === 404)).toHaveLength(2)
      expect([204, 404]).toContain((await sending).status)
      expect((await headUpload(app, begun)).status).toBe(404)
      expect(await readStatus(app, begun.id)).toEqual({
        artifactId: begun.id,
        state: 'unknown',
        reason: 'deleted',
      })
      const again = await createUpload(app, { size: 5, metadata: { artifactId: begun.id } })
      expect((await patchUpload(app, again, 0, Buffer.from('hello'))).status).toBe(204)
      await waitForState(app, begun.id, 'ready')
      expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
    },
  )
})
