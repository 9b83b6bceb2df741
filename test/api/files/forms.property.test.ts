/** Every file arrives as it was, and whatever is sent in the place of a form is answered at once and leaves nothing behind. */

import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import {
  BOUNDARY,
  download,
  filePart,
  formEnd,
  listStored,
  postFiles,
  purpose,
  toForm,
  toPieces,
} from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const pieces = [
  '--',
  '-',
  '\r\n',
  '\r',
  '\n',
  '\r\n\r\n',
  ': ',
  '',
  'x',
  `--${BOUNDARY}`,
  formEnd,
  'Content-Disposition: form-data; name="file"; filename="a"',
  'Content-Disposition: form-data; name="purpose"',
  'Content-Disposition: attachment',
  'Content-Type: text/plain',
]
const whole = toForm([purpose, filePart()]).toString('latin1')

/** A good form with some of it replaced by pieces of other forms. */
const nearlyForm = fc
  .array(fc.tuple(fc.nat(whole.length), fc.nat(12), fc.constantFrom(...pieces)), {
    minLength: 1,
    maxLength: 3,
  })
  .map((edits) =>
    edits.reduce((text, [at, cut, piece]) => text.slice(0, at) + piece + text.slice(at + cut), whole),
  )
const noForm = fc
  .array(fc.constantFrom(...pieces), { maxLength: 12 })
  .map((list) => `--${BOUNDARY}${list.join('')}`)

test('a malformed form is refused, or means the file in it, and no call waits', async () => {
  const dataDir = join(await makeFolder(), 'data')
  // A call that waited for its time-out would make the test run out of its own.
  const app = await startApp({
    PARLEY_DATA_DIR: dataDir,
    PARLEY_BODY_IDLE_SECONDS: '600',
    PARLEY_RATE_LIMIT_PARENT: '0',
  })
  let fileCount = 0
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearlyForm, noForm), async (text) => {
      const { status, body } = await postFiles(app, Buffer.from(text, 'latin1'))
      expect([200, 400]).toContain(status)
      if (status === 200) fileCount += 1
      else expect(body.error.code).toBe('invalid_value')
    }),
    { numRuns: 400 },
  )
  const { kept, incoming } = await listStored(dataDir)
  expect(incoming).toEqual([])
  expect(kept).toHaveLength(fileCount)
})

/** Bytes in which something that is nearly a boundary stands at every place. */
const trickyBytes = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        Buffer.from('\r\n'),
        Buffer.from('\r'),
        Buffer.from('--'),
        Buffer.from(`\n--${BOUNDARY}`),
        Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}`),
        Buffer.from(`--${BOUNDARY}--`.slice(1)),
      ),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc.nat(70_000).map((size) => Buffer.alloc(size, '\r\n-')),
    ),
    { maxLength: 8 },
  )
  .map((list) => Buffer.concat(list))
  .filter((bytes) => !`\r\n${bytes.toString('latin1')}\r\n`.includes(`\r\n--${BOUNDARY}`))

test('a file comes back byte for byte, whatever is in it and however it was cut', async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
  await fc.assert(
    fc.asyncProperty(trickyBytes, fc.integer({ min: 40, max: 100_000 }), async (bytes, pieceSize) => {
      const form = toForm([purpose, filePart(bytes)])
      const { status, body } = await postFiles(app, toPieces(form, pieceSize))
      expect([status, body.bytes]).toEqual([200, bytes.length])
      const content = Buffer.from(await (await download(app, body.id)).arrayBuffer())
      expect(content.equals(bytes)).toBe(true)
    }),
    { numRuns: 60 },
  )
})
