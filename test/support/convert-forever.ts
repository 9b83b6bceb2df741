/** Converts one video in a separate process that a test can kill. */
import { createConverter } from '../../src/conversion/conversion.ts'
import { systemClock } from '../../src/lib/clock.ts'

const [, , source = '', workFolder = '', searchPath = ''] = process.argv
const conversion = { wallMs: 3_600_000, memoryBytes: 2 * 1024 ** 3, searchPath, tries: 1 }
const converter = await createConverter({ config: { conversion }, clock: systemClock })
const { signal } = new AbortController()
await converter.convert({ kind: 'video', source, workFolder, signal, onProgress: () => {} })
