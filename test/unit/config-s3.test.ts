/** Tests the settings for storage in an S3 bucket. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../src/config/parse.ts'
import { makeFolder } from '../support/process.ts'

const keys = { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' }
const credentials = { accessKeyId: 'AKIATEST', secretAccessKey: 'secret', sessionToken: undefined }

async function s3Of(variables: Record<string, string>) {
  return (await parseConfig({ S3_BUCKET: 'parley', ...variables })).config.s3
}

async function problemsOf(variables: Record<string, string>): Promise<readonly string[]> {
  const error = await parseConfig(variables).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).problems
}

describe('an S3 bucket', () => {
  test('on AWS requires only a name', async () => {
    expect(await s3Of({})).toEqual({
      bucket: 'parley',
      prefix: '',
      endpoint: undefined,
      region: 'us-east-1',
      forcePathStyle: false,
      credentials: undefined,
    })
  })

  test('outside AWS uses path-style URLs by default', async () => {
    const there = { S3_ENDPOINT: 'http://127.0.0.1:9000/', ...keys }
    const s3 = {
      bucket: 'parley',
      prefix: '',
      endpoint: 'http://127.0.0.1:9000',
      region: 'us-east-1',
      credentials,
    }
    expect(await s3Of(there)).toEqual({ ...s3, forcePathStyle: true })
    expect(await s3Of({ ...there, S3_FORCE_PATH_STYLE: 'false' })).toEqual({ ...s3, forcePathStyle: false })
  })

  test.each(['production', 'production/'])('may use the prefix %s', async (prefix) => {
    expect(await s3Of({ S3_PREFIX: prefix })).toMatchObject({ prefix: 'production/' })
  })

  test('is in the region from AWS_REGION unless S3_REGION is set', async () => {
    expect(await s3Of({ AWS_REGION: 'eu-central-1' })).toMatchObject({ region: 'eu-central-1' })
    expect(await s3Of({ AWS_REGION: 'eu-central-1', S3_REGION: 'auto' })).toMatchObject({ region: 'auto' })
  })

  test('can be configured with secrets from files', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, 'secret'), 'secret\n')
    await writeFile(join(folder, 'token'), 'token\n')
    const given = {
      AWS_ACCESS_KEY_ID: 'AKIATEST',
      AWS_SECRET_ACCESS_KEY_FILE: join(folder, 'secret'),
      AWS_SESSION_TOKEN_FILE: join(folder, 'token'),
    }
    expect(await s3Of(given)).toMatchObject({ credentials: { ...credentials, sessionToken: 'token' } })
  })

  test('is not used if PARLEY_DATA_DIR is :memory:', async () => {
    const { config, warnings } = await parseConfig({ S3_BUCKET: 'parley', PARLEY_DATA_DIR: ':memory:' })
    expect(config.s3).toBeUndefined()
    expect(warnings).toEqual(['S3_BUCKET is ignored: PARLEY_DATA_DIR=:memory: does not store any files.'])
  })
})

describe('an incomplete S3 configuration', () => {
  test.each([
    [
      { AWS_ACCESS_KEY_ID: 'AKIATEST' },
      'AWS_SECRET_ACCESS_KEY is required because AWS_ACCESS_KEY_ID is set.',
    ],
    [
      { AWS_SECRET_ACCESS_KEY: 'secret' },
      'AWS_ACCESS_KEY_ID is required because AWS_SECRET_ACCESS_KEY is set.',
    ],
    [
      { S3_ENDPOINT: 'http://127.0.0.1:9000' },
      expect.stringMatching(/^AWS_ACCESS_KEY_ID and .* are required because S3_ENDPOINT is set/),
    ],
  ])('is rejected: %j', async (variables, problem) => {
    expect(await problemsOf({ S3_BUCKET: 'parley', ...variables })).toEqual([problem])
  })

  test('is accepted without a warning if it contains only AWS variables, because other programs use them', async () => {
    const { config, warnings } = await parseConfig({
      AWS_ACCESS_KEY_ID: 'AKIATEST',
      AWS_REGION: 'eu-central-1',
    })
    expect(config.s3).toBeUndefined()
    expect(warnings).toEqual([])
  })

  test('causes a warning if S3_REGION is set without S3_BUCKET', async () => {
    const { warnings } = await parseConfig({ S3_REGION: 'eu-central-1' })
    expect(warnings).toEqual(['S3_REGION is ignored: it requires S3_BUCKET.'])
  })
})
