/** Copies each upload to a folder. Start with: PARLEY_HOOKS=examples/uploads.mjs npm start */
import { createWriteStream } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

export async function onUploadComplete({ eventId, filename }, { open, recordOutcome, signal }) {
  await mkdir('copies', { recursive: true })
  // An event may be delivered twice; the second delivery overwrites the same file.
  const path = `copies/${eventId}`
  await pipeline(await open(), createWriteStream(`${path}.part`), { signal })
  await rename(`${path}.part`, path)
  await recordOutcome({ path, filename })
}
