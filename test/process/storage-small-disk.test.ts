/** Tests that the local file store reports a full disk. */
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeFolder } from '../support/process.ts'

describe('the local store on a full disk', () => {
  // Not every machine allows the mount namespace that this test needs.
  const alone = ['--user', '--map-root-user', '--mount']
  const canMount = spawnSync('unshare', [...alone, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0
  test.skipIf(!canMount)('fails with storage_full and leaves no partial file', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, 'small'))
    const script = `
      import { readdir } from 'node:fs/promises'
      import { openFolder } from ${JSON.stringify(join(import.meta.dirname, '../../src/storage/folder.ts'))}
      import { toResumableStore } from ${JSON.stringify(join(import.meta.dirname, '../../src/storage/local.ts'))}
      const plenty = { freeBytes: 1e12, totalBytes: 1e12 }
      const { blobs } = toResumableStore(await openFolder('small/files', async () => plenty), true)
      async function* tooMuch() {
        for (let chunks = 0; chunks < 64; chunks++) yield Buffer.alloc(65536)
      }
      const failure = await blobs.stage(tooMuch()).catch((error) => error)
      console.log(failure.reason, failure.details?.cause?.code, JSON.stringify(await readdir('small/files/incoming')))
    `
    const mount = `mount -t tmpfs -o size=1m none small && exec "$0" --input-type=module -e "$1"`
    const { stdout } = spawnSync('unshare', [...alone, 'sh', '-c', mount, process.execPath, script], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(stdout).toBe('storage_full ENOSPC []\n')
  })
})
