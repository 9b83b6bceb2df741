/** Tests that the server can reject a form mid-transfer and remains available. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { collectUncaught, sendForm } from '../../support/broken-forms.ts'
import {
  BOUNDARY,
  field,
  filePart,
  formEnd,
  listStored,
  purpose,
  toForm,
  upload,
} from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const MIB = 1024 * 1024
const manyFields = Array.from({ length: 9 }, (_, index) => field(`f${index}`, 'x'))
const unended = (parts: Parameters<typeof toForm>[0]) => toForm(parts).subarray(0, -formEnd.length - 4)

const forms: readonly (readonly [what: string, body: Buffer])[] = [
  ['nine fields and a truncated last field', unended([...manyFields, field('z', 'abc')])],
  ['ten extra fields and a 1 MiB file', toForm([...manyFields, purpose, filePart(Buffer.alloc(MIB))])],
  [
    'a 5,000-character purpose and a file',
    toForm([field('purpose', 'x'.repeat(5_000)), filePart(Buffer.alloc(MIB))]),
  ],
  [
    'a 5,000-character purpose and a truncated file',
    unended([field('purpose', 'x'.repeat(5_000)), filePart('abc')]),
  ],
  ['two files, the second one truncated', unended([filePart(), filePart(Buffer.alloc(MIB))])],
  ['100,000 parts', toForm(Array(100_000).fill(field('f', 'x')))],
  [
    '100,000 parts without a form-data disposition',
    Buffer.from(`--${BOUNDARY}\r\nX: y\r\n\r\nz\r\n`.repeat(100_000)),
  ],
]

test.each(forms)(
  'the server rejects a form with %s and continues to answer requests',
  async (_what, body) => {
    const uncaught = collectUncaught()
    const dataDir = join(await makeFolder(), 'data')
    const app = await startApp({ PARLEY_DATA_DIR: dataDir, PARLEY_RATE_LIMIT_PARENT: '0' })
    for (const framing of ['length', 'chunked', 'half-closed', 'reset'] as const)
      for (const pieceSize of [body.length, 65_536, Math.ceil(body.length / 100)]) {
        const answer = await sendForm(app, { body, pieceSizes: [pieceSize], framing })
        if (framing === 'length' || framing === 'chunked') expect(answer?.status).toBe(400)
      }
    expect((await upload(app)).status).toBe(200)
    expect(uncaught).toEqual([])
    await expect.poll(async () => (await listStored(dataDir)).incoming).toEqual([])
    expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(1)
  },
)
