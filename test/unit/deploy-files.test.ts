/** Tests that the example deployment files match the server's settings, without starting containers. */
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { parseConfig } from '../../src/config/parse.ts'
import { configOf, image, moveFiles, readRepositoryFile } from '../support/deploy-files.ts'
import { getText, readEnvironment } from '../support/dockerfile.ts'
import { forgeKey } from '../support/forge-key.ts'
import { makeFolder, repository } from '../support/process.ts'

const built = readEnvironment(image)

const parentKey = forgeKey('svc_', '5'.repeat(55))

const secondsOf = (text: string) => Number(/^(\d+)s$/.exec(text)?.[1])

describe('compose.yaml', () => {
  /** Replaces every variable of the form `${NAME:-default}` with its default. */
  const fillIn = (text: string) => text.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
  const load = async () => parse(fillIn(await readRepositoryFile('compose.yaml')), { merge: true })

  test('refers only to services, networks, volumes and secrets that it defines', async () => {
    const { services, networks, volumes, secrets } = await load()
    for (const service of Object.values<Record<string, unknown>>(services)) {
      const named = service as Record<string, Iterable<string> & Record<string, string>>
      expect(Object.keys(secrets)).toEqual(expect.arrayContaining([...(named.secrets ?? [])]))
      expect(Object.keys(services)).toEqual(expect.arrayContaining(Object.keys(named.depends_on ?? {})))
      const where = Array.isArray(named.networks) ? named.networks : Object.keys(named.networks ?? {})
      expect(Object.keys(networks)).toEqual(expect.arrayContaining(where))
      for (const mount of named.volumes ?? []) {
        const [source = ''] = mount.split(':')
        if (source.startsWith('./')) expect((await stat(join(repository, source))).isFile()).toBe(true)
        else expect(Object.keys(volumes)).toContain(source)
      }
      const paths = JSON.stringify(service).matchAll(/\/run\/secrets\/(\w+)/g)
      expect([...(named.secrets ?? [])]).toEqual(expect.arrayContaining([...paths].map(([, name]) => name)))
    }
  })

  test('restricts every container and publishes only the load balancer', async () => {
    const { services, networks } = await load()
    for (const [name, service] of Object.entries<Record<string, unknown>>(services)) {
      expect(service, name).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        restart: 'unless-stopped',
      })
      expect('ports' in service, name).toBe(name === 'balancer')
      expect(String(service.image), name).not.toMatch(/:latest$/)
      // The Parley image already defines a health check.
      expect('healthcheck' in service, name).toBe(!name.startsWith('parley'))
    }
    expect(networks.back).toEqual({ internal: true })
  })

  test('mounts the tested Caddyfile and configures the replicas to trust only the load balancer', async () => {
    const { services } = await load()
    const { balancer } = services
    expect(balancer.volumes).toContain('./deploy/Caddyfile:/etc/caddy/Caddyfile:ro')
    const caddyfile = await readRepositoryFile('deploy/Caddyfile')
    for (const name of Object.keys(balancer.environment)) expect(caddyfile).toContain(`{$${name}:`)
    for (const address of balancer.environment.PARLEY_REPLICAS.split(' ')) {
      const [host, port] = address.split(':')
      expect(services[host].environment.PARLEY_TRUSTED_PROXIES).toBe(balancer.networks.front.ipv4_address)
      expect(port).toBe(built.PORT)
    }
  })

  test('gives containers enough time to finish open requests when they stop', async () => {
    const { services } = await load()
    const { config } = await parseConfig({})
    for (const name of ['balancer', 'parley-1', 'parley-2']) {
      expect(secondsOf(services[name].stop_grace_period)).toBeGreaterThan(
        config.timings.shutdownMs / 1000 + 2,
      )
    }
  })
})

describe('deploy/kubernetes.yaml', () => {
  // biome-ignore lint/suspicious/noExplicitAny: each Kubernetes object has a different shape
  const load = async (): Promise<any[]> => {
    const documents = parseAllDocuments(await readRepositoryFile('deploy/kubernetes.yaml'))
    expect(documents.flatMap(({ errors }) => errors)).toEqual([])
    return documents.map((document) => document.toJS())
  }
  const getPod = async () => {
    const objects = await load()
    const find = (kind: string) => objects.find((one) => one.kind === kind)
    const pod = find('Deployment').spec.template
    return { find, pod, container: pod.spec.containers[0] }
  }

  test('configures replicas completely, with secrets from files', async () => {
    const { find, pod, container } = await getPod()
    const folder = await makeFolder()
    const secret: Record<string, string> = find('Secret').stringData
    for (const [name, value] of Object.entries(secret)) {
      await writeFile(join(folder, name), name === 'parent-key' ? parentKey : value)
    }
    expect(container.envFrom).toEqual([{ configMapRef: { name: find('ConfigMap').metadata.name } }])
    const { mountPath } = container.volumeMounts.find((one: { name: string }) => one.name === 'secrets')
    const volume = pod.spec.volumes.find((one: { name: string }) => one.name === 'secrets')
    expect(volume.secret.secretName).toBe(find('Secret').metadata.name)
    const moved = moveFiles(find('ConfigMap').data, `${mountPath}/`, folder)
    const config = await configOf({ ...built, ...moved })
    expect(config).toMatchObject({ databaseUrl: secret['database-url'], redisUrl: secret['redis-url'] })
    expect(config.server.publicUrl).toBe(`https://${find('Ingress').spec.rules[0].host}`)
  })

  test('refers only to objects that it defines', async () => {
    const { find, pod, container } = await getPod()
    const labels = pod.metadata.labels
    for (const kind of ['Deployment', 'PodDisruptionBudget']) {
      expect(find(kind).spec.selector.matchLabels).toEqual(labels)
    }
    const service = find('Service')
    expect(service.spec.selector).toEqual(labels)
    const portNames = container.ports.map(({ name }: { name: string }) => name)
    for (const { targetPort } of service.spec.ports) expect(portNames).toContain(targetPort)
    expect(String(container.ports[0].containerPort)).toBe(built.PORT)
    const { backend } = find('Ingress').spec.rules[0].http.paths[0]
    expect(backend.service).toEqual({
      name: service.metadata.name,
      port: { name: service.spec.ports[0].name },
    })
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      expect(portNames).toContain(container[probe].httpGet.port)
    }
    const volumes = pod.spec.volumes.map(({ name }: { name: string }) => name)
    const mounts = container.volumeMounts.map(({ name }: { name: string }) => name)
    expect(mounts.sort()).toEqual(volumes.sort())
  })

  test("runs containers as the image's user, which can write only to /data and /tmp", async () => {
    const { pod, container } = await getPod()
    const [user, group] = getText(image, 'USER').split(':').map(Number)
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: user, runAsGroup: group })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    const written = container.volumeMounts.filter((one: { readOnly?: boolean }) => !one.readOnly)
    const paths = written.map(({ mountPath }: { mountPath: string }) => mountPath)
    expect(paths).toEqual([built.PARLEY_DATA_DIR, '/tmp'])
  })

  test('gives pods enough time to leave load balancers and then finish open requests', async () => {
    const { pod, container } = await getPod()
    const { config } = await parseConfig({})
    const [, pauseSeconds] = container.lifecycle.preStop.exec.command
    const neededSeconds = Number(pauseSeconds) + config.timings.shutdownMs / 1000 + 2
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(neededSeconds)
  })

  test('configures the Ingress like deploy/nginx.conf', async () => {
    const { find } = await getPod()
    const nginx = await readRepositoryFile('deploy/nginx.conf')
    const settingOf = (name: string) =>
      new RegExp(`^ *${name} (.*);$`, 'm').exec(nginx)?.[1]?.replace(/^(\d+)s$/, '$1')
    const names: Record<string, string> = { 'proxy-body-size': 'client_max_body_size' }
    const annotations: Record<string, string> = find('Ingress').metadata.annotations
    expect(Object.keys(annotations).length).toBeGreaterThan(5)
    for (const [annotation, value] of Object.entries(annotations)) {
      const name = annotation.split('/')[1] as string
      expect(settingOf(names[name] ?? name.replaceAll('-', '_')), name).toBe(value)
    }
  })
})

describe('deploy/parley.service', () => {
  test('matches the settings in docs/deploy.md and allows enough time to finish open requests', async () => {
    const unit = await readRepositoryFile('deploy/parley.service')
    const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
    const [, folder = '', settings = ''] =
      /install .* (\/.*)\/\.env <<'END'\n([\s\S]*?)END\n/.exec(await readRepositoryFile('docs/deploy.md')) ??
      []
    expect(settingOf('WorkingDirectory')).toBe(folder)
    const secrets = await makeFolder()
    await writeFile(join(secrets, 'secret'), parentKey)
    const config = await configOf(moveFiles(parseEnv(settings), `${folder}/`, secrets))
    expect(config).toMatchObject({ secret: parentKey, dataDir: `/var/lib/${settingOf('StateDirectory')}` })
    expect(secondsOf(settingOf('TimeoutStopSec'))).toBeGreaterThan(config.timings.shutdownMs / 1000 + 2)
  })
})
