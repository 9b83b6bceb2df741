/** Tests that the OpenAPI document describes every REST operation and matches real responses. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { uploadPaths } from '../../../src/artifacts/tus-openapi.ts'
import { errorShapeOf } from '../../../src/operations/errors.ts'
import { definitionFormats } from '../../../src/operations/rest.ts'
import { listOperations, renderApiDocument, restOperations } from '../../../src/server/api.ts'
import { type Answer, startApp } from '../../support/app.ts'

// biome-ignore lint/suspicious/noExplicitAny: the type of a nested value depends on its path
type Json = any
const document: Json = JSON.parse(JSON.stringify(renderApiDocument()))
const operations = restOperations
const find = (path: string, method: string): Json => document.paths[path]?.[method.toLowerCase()]

/** Yields every nested value with its path. */
function* walk(
  value: Json,
  path: readonly string[] = [],
): Generator<{ value: Json; path: readonly string[] }> {
  yield { value, path }
  if (typeof value !== 'object' || value === null) return
  for (const [key, child] of Object.entries(value)) yield* walk(child, [...path, key])
}

function resolvePointer(pointer: string): Json {
  const steps = pointer.replace(/^#\//, '').split('/')
  return steps.reduce((value, step) => value?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], document)
}

describe('the OpenAPI document', () => {
  test('is served at /openapi.json without a key', async () => {
    const app = await startApp()
    const answer = await app.call('GET', '/openapi.json', { key: null })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(answer.body).toEqual(document)
    expect(document.openapi).toMatch(/^3\.1\./)
  })

  test('is rendered identically every time', () => {
    expect(JSON.stringify(renderApiDocument())).toBe(JSON.stringify(renderApiDocument()))
  })

  test('lists exactly the REST operations and the upload paths', () => {
    const documented = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const real = operations.map(({ http }) => `${http.method} ${http.path}`)
    const uploads = Object.entries(uploadPaths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(documented.sort()).toEqual([...real, ...uploads].sort())
  })

  test('does not have dangling references, unused schemas or duplicate schemas', () => {
    const references = [...walk(document)]
      .filter(({ path }) => path.at(-1) === '$ref')
      .map(({ value }) => value)
    expect(references.length).toBeGreaterThan(20)
    for (const reference of references) expect(resolvePointer(reference)).toBeTypeOf('object')
    const names = Object.keys(document.components.schemas)
    for (const name of names) {
      expect(references).toContain(`#/components/schemas/${name}`)
      const same = names.filter(
        (other) =>
          JSON.stringify(document.components.schemas[other]) ===
          JSON.stringify(document.components.schemas[name]),
      )
      expect(same).toEqual([name])
    }
  })

  test('defines every named schema and refers to it', () => {
    const named = operations.flatMap(({ output, input, request, response }) =>
      [output, request?.bodySchema ?? input, response?.events].flatMap((schema) => schema?.meta()?.id ?? []),
    )
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(named))
    for (const { value, path } of walk(document.paths)) {
      if (path.at(-1) === 'schema' && path.includes('application/json')) expect(value).toHaveProperty('$ref')
    }
  })

  test('describes exactly the tags that operations use', () => {
    const used = new Set(operations.map(({ tag }) => tag))
    expect(new Set(document.tags.map(({ name }: Json) => name))).toEqual(used.add('Uploads'))
  })
})

test('each operation id in the OpenAPI document is a tRPC procedure name, optionally with the prefix manager-', () => {
  const ids = operations.map(({ http }) => find(http.path, http.method).operationId)
  expect(new Set(ids).size).toBe(ids.length)
  const names = listOperations()
    .filter(({ operation }) => operation.http !== undefined)
    .map(({ name }) => name.replace('.', '-'))
  expect(ids.slice(0, names.length)).toEqual(names)
  for (const id of ids.slice(names.length)) expect(names).toContain(id.replace(/^manager-/, ''))
})

describe.each(operations)('the OpenAPI operation $id', ({ http, auth, input, request, response, output }) => {
  const documented = find(http.path, http.method)

  test('states which keys and console users may call it', () => {
    const names = { parent: ['parentKey'], agent: ['agentKey'], token: ['artifactToken'] }
    const keys = auth.callers.flatMap((caller) => names[caller])
    const isForTokens = auth.callers.includes('token')
    const inAddress = isForTokens && http.method === 'GET' ? ['artifactTokenInAddress'] : []
    const isForUsers = auth.callers.length > 0 && (http.path.startsWith('/v1/manager/') || isForTokens)
    const users = isForUsers ? ['forwardedIdentity', 'session'] : []
    const schemes = [...(auth.needs === undefined ? keys : []), ...inAddress, ...users].map((name) => ({
      [name]: [],
    }))
    expect(documented.security).toEqual(schemes)
    for (const scheme of schemes) {
      expect(document.components.securitySchemes).toHaveProperty(Object.keys(scheme)[0] as string)
    }
  })

  test('describes its successful response, rate-limit headers and errors', () => {
    const success = documented.responses[response?.status ?? 200]
    const failures = Object.fromEntries(
      Object.entries<Json>(documented.responses).filter(([status]) => Number(status) >= 400),
    )
    expect(Object.keys(success.headers)).toEqual(
      auth.isUncounted
        ? ['Protocol-Version']
        : ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    )
    const isPublic = auth.callers.length === 0
    expect(Object.keys(failures)).toEqual(
      expect.arrayContaining(['400', '500', ...(isPublic ? [] : ['401', '429'])]),
    )
    const shape = { agent: 'AgentError', openai: 'Error', artifact: 'ArtifactError' }[errorShapeOf(http.path)]
    for (const { content } of Object.values(failures)) {
      if (response?.page) expect(Object.keys(content)).toEqual(['text/html'])
      else expect(content['application/json'].schema.$ref).toBe(`#/components/schemas/${shape}`)
    }
    if (!isPublic) expect(documented.responses['429'].headers).toHaveProperty('Retry-After')
  })

  test('describes each input once, in the place where it is sent', () => {
    const inPath = [...http.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const parameters = (documented.parameters ?? []) as Json[]
    expect(parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name)).toEqual(inPath)
    const fields: Readonly<Record<string, z.ZodType>> = input instanceof z.ZodObject ? input.shape : {}
    for (const { name, in: place, required } of parameters)
      expect(required === true).toBe(place === 'path' || fields[name]?.safeParse(undefined).success === false)
    const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
    expect(new Set(names).size).toBe(names.length)
    if (http.method === 'GET' || http.method === 'DELETE')
      expect(documented).not.toHaveProperty('requestBody')
    if (request?.body === 'definition') {
      const mediaTypes = ['application/json', ...Object.keys(definitionFormats)]
      expect(Object.keys(documented.requestBody.content)).toEqual(mediaTypes)
    }
    if (request?.upload !== undefined) {
      expect(Object.keys(documented.requestBody.content)).toEqual(['multipart/form-data'])
    }
    if (response?.download) {
      for (const status of [200, 206]) {
        expect(Object.keys(documented.responses[status].content)).toEqual(response.download)
      }
      expect(names).toEqual(
        expect.arrayContaining(['header Range', 'header If-Range', 'header If-None-Match']),
      )
    }
    if (response?.events !== undefined) {
      const json = output instanceof z.ZodVoid ? [] : ['application/json']
      expect(Object.keys(documented.responses[200].content)).toEqual([...json, 'text/event-stream'])
    }
  })
})

describe('the OpenAPI document', () => {
  test('describes YAML request bodies with the schema of agent definitions, which is also served for editors', async () => {
    const app = await startApp()
    const document = (await app.call('GET', '/openapi.json', { key: null })).body
    for (const [path, method] of [
      ['/v1/agents', 'post'],
      ['/v1/agents/{agent_id}', 'put'],
    ] as const) {
      const { content } = document.paths[path][method].requestBody
      for (const mediaType of ['application/yaml', 'text/yaml', 'application/x-yaml'])
        expect(content[mediaType].schema).toEqual({ $ref: '#/components/schemas/AgentDefinition' })
      expect(content['text/markdown'].schema.type).toBe('string')
    }
    const { $schema, ...served } = (await app.call('GET', '/agent-definition.schema.json', { key: null }))
      .body
    expect($schema).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(document.components.schemas.AgentDefinition).toEqual(served)
    const validate = new Ajv2020({ strict: false }).compile(served)
    expect(validate({ name: 'A', instructions: 'B', unknown: 1 })).toBe(true)
    expect(validate({ name: 'A', instructions: 'B', temperature: 3 })).toBe(false)
  })

  test('lists the media types of downloads', () => {
    const types = (path: string) => Object.keys(document.paths[path].get.responses[200].content)
    expect(types('/artifacts/{artifact_id}')).toEqual([
      'video/mp4',
      'image/jpeg',
      'image/webp',
      'text/vtt',
      '*/*',
    ])
    expect(types('/artifacts/{artifact_id}/poster')).toEqual(['image/jpeg'])
  })
})

describe('a response of the server', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema(document, 'document')

  function problems(pointer: string, value: unknown): unknown {
    const validate = ajv.getSchema(`document${pointer}`) ?? ajv.compile({ $ref: `document${pointer}` })
    validate(value)
    return validate.errors ?? []
  }
  const escapeStep = (text: string) => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))
  const pointerTo = (path: string, method: string, rest: readonly string[]) =>
    `#/${['paths', path, method.toLowerCase(), ...rest, 'content', 'application/json', 'schema'].map(escapeStep).join('/')}`

  test('matches the OpenAPI document', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const chat = { model: 'mock', messages: [{ role: 'user', content: 'hi' }], temperature: null, user: 'me' }
    const requests: [method: string, path: string, target: string, status: number, body?: object][] = [
      ['POST', '/v1/agents', '/v1/agents', 201, { yaml: 'name: A\ninstructions: B\n' }],
      ['GET', '/v1/agents', '/v1/agents?limit=1', 200],
      ['GET', '/v1/agents/{agent_id}', `/v1/agents/${id}`, 200],
      ['PUT', '/v1/agents/{agent_id}', `/v1/agents/${id}`, 200, { yaml: 'name: C\ninstructions: D\n' }],
      ['GET', '/v1/agents/{agent_id}/versions', `/v1/agents/${id}/versions`, 200],
      [
        'POST',
        '/v1/agents/{agent_id}/rotate-key',
        `/v1/agents/${id}/rotate-key`,
        200,
        { overlap_seconds: 5 },
      ],
      ['POST', '/v1/chat/completions', '/v1/chat/completions', 200, chat],
      ['GET', '/v1/models', '/v1/models', 200],
      ['GET', '/v1/models/{model_id}', `/v1/models/agent/${id}`, 200],
      ['GET', '/v1/keys/validate', '/v1/keys/validate', 200],
      ['DELETE', '/v1/agents/{agent_id}', `/v1/agents/${id}`, 200],
      ['GET', '/v1/agents/{agent_id}', '/v1/agents/none', 404],
      ['GET', '/v1/models/{model_id}', '/v1/models/none', 404],
      ['POST', '/v1/agents', '/v1/agents', 400, {}],
      ['POST', '/v1/chat/completions', '/v1/chat/completions', 400, {}],
    ]
    for (const [method, path, target, status, body] of requests) {
      const answer: Answer = await app.call(method, target, { body })
      expect([target, answer.status]).toEqual([target, status])
      expect(problems(pointerTo(path, method, ['responses', String(status)]), answer.body)).toEqual([])
      if (body === undefined) continue
      const found = problems(pointerTo(path, method, ['requestBody']), body)
      if (status < 400) expect(found).toEqual([])
      else expect(found).not.toEqual([])
    }
  })

  test('consists of documented events if it is a stream', async () => {
    const app = await startApp()
    const pointer = find('/v1/chat/completions', 'POST').responses[200].content['text/event-stream'].schema
      .contentSchema.$ref
    const { events } = await app.stream({ model: 'mock', messages: [{ role: 'user', content: 'hi' }] })
    expect(events.length).toBeGreaterThan(2)
    for (const event of events) expect(problems(pointer, event)).toEqual([])
    expect(problems(pointer, { object: 'something else' })).not.toEqual([])
  })
})
