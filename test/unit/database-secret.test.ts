/** Tests how the secret in a data directory is generated, read and rejected. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { loadOrCreateSecret } from '../../src/db/data-directory.ts'
import { startupErrorOf } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

let dataDir: string

beforeEach(async () => {
  dataDir = join(await makeFolder(), 'data')
  await mkdir(dataDir)
})

describe("a data directory's secret", () => {
  test('is generated only once, from 48 random bytes, and is readable only by the current OS user', async () => {
    const secret = await loadOrCreateSecret(dataDir, randomBytes)
    expect(Buffer.from(secret, 'base64')).toHaveLength(48)
    expect(await readFile(join(dataDir, 'secret'), 'utf8')).toBe(`${secret}\n`)
    expect((await stat(join(dataDir, 'secret'))).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['secret'])
    expect(await loadOrCreateSecret(dataDir, randomBytes)).toBe(secret)
  })

  test('is read without the trailing newline if an operator wrote it', async () => {
    await writeFile(join(dataDir, 'secret'), `${'x'.repeat(32)}\n`)
    expect(await loadOrCreateSecret(dataDir, randomBytes)).toBe('x'.repeat(32))
  })

  test('is rejected but not replaced if it is shorter than 32 bytes', async () => {
    await writeFile(join(dataDir, 'secret'), 'too short\n')
    const message = await startupErrorOf(loadOrCreateSecret(dataDir, randomBytes))
    expect(message).toContain(`${join(dataDir, 'secret')} must contain at least 32 bytes`)
    expect(message).not.toContain('too short')
    expect(await readFile(join(dataDir, 'secret'), 'utf8')).toBe('too short\n')
  })

  test('is not written to disk in memory mode', async () => {
    const secret = await loadOrCreateSecret(':memory:', randomBytes)
    expect(Buffer.from(secret, 'base64')).toHaveLength(48)
    expect(existsSync(':memory:')).toBe(false)
  })

  test('causes an error that names its path if it cannot be read', async () => {
    await mkdir(join(dataDir, 'secret'))
    expect(await startupErrorOf(loadOrCreateSecret(dataDir, randomBytes))).toContain(
      `The file ${join(dataDir, 'secret')} is not usable by`,
    )
  })
})
