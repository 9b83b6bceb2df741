/** Runs nginx and Caddy with the configuration files from `deploy/`. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePort } from './free-port.ts'
import { repository } from './process.ts'
import { getProgram } from './programs.ts'

const run = promisify(execFile)

/** The user id for proxies if the tests run as root. */
const NOBODY = 65_534

export interface RunningProxy {
  readonly url: string
  /** The folder in which the proxy buffers request bodies. */
  readonly bodyFolder: string
  /** Returns the access log and the error log. */
  readLog(): Promise<string>
  stop(): Promise<void>
}

export interface ProxyOptions {
  /** The replicas' addresses in the form `host:port`. */
  readonly replicas: readonly [string, string]
  /** Changes the configuration before its placeholders are replaced. */
  readonly change?: (text: string) => string
  /** Additional lines for nginx's `http` block. */
  readonly around?: string
}

/** A certificate for this machine and its private key, both in PEM format. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

export async function makeCertificate(): Promise<Certificate> {
  const names = ['-subj', '/CN=proxy', '-addext', 'subjectAltName=IP:127.0.0.1']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const words = ['req', '-x509', ...curve, '-days', '2', '-keyout', '-', '-out', '-', ...names]
  const { stdout } = await run(getProgram('openssl'), words)
  const find = (kind: string) => {
    const [block = ''] = new RegExp(`-----BEGIN ${kind}-----[^]*?-----END ${kind}-----\n`).exec(stdout) ?? []
    return block
  }
  return { cert: find('CERTIFICATE'), key: find('PRIVATE KEY') }
}

/** Replaces placeholders in a text; throws if the text does not contain one of them. */
function fillIn(text: string, places: readonly (readonly [string, string])[]): string {
  return places.reduce((filled, [name, value]) => {
    if (!filled.includes(name)) throw new Error(`${name} is not in the file`)
    return filled.replaceAll(name, () => value)
  }, text)
}

/** Creates a folder that contains the certificate and is writable for the proxy's user. */
async function makeProxyFolder({ cert, key }: Certificate): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-proxy-'))
  await mkdir(join(folder, 'bodies'))
  await writeFile(join(folder, 'cert.pem'), cert)
  await writeFile(join(folder, 'key.pem'), key)
  if (process.getuid?.() === 0) {
    for (const name of ['', 'bodies', 'cert.pem', 'key.pem']) await chown(join(folder, name), NOBODY, NOBODY)
  }
  return folder
}

/** Starts a proxy and waits until its output matches `ready`. */
async function startIn(
  folder: string,
  command: readonly string[],
  ready: RegExp,
  env: Readonly<Record<string, string>>,
): Promise<{ child: ChildProcess; said(): string }> {
  const isRoot = process.getuid?.() === 0
  const asNobody = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  // Stops the proxy when the test run is killed.
  const words = [...asNobody, '--pdeathsig=KILL', ...command]
  const child = spawn('setpriv', words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], env })
  let said = ''
  child.stderr.setEncoding('utf8')
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (text: string) => {
      said += text
      if (ready.test(said)) resolve()
    })
    child.once('exit', () => reject(new Error(`${command[0]} did not start:\n${said}`)))
  }).catch(async (error) => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  return { child, said: () => said }
}

function toProxy(
  port: number,
  folder: string,
  child: ChildProcess,
  readLog: () => Promise<string>,
): RunningProxy {
  return {
    url: `https://127.0.0.1:${port}`,
    bodyFolder: join(folder, 'bodies'),
    readLog,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts nginx with `deploy/nginx.conf` inside an `http` block, as in Debian's configuration. */
export async function startNginx(certificate: Certificate, options: ProxyOptions): Promise<RunningProxy> {
  const { replicas, change = (text) => text, around = '' } = options
  const folder = await makeProxyFolder(certificate)
  const [port, plainPort] = [await findFreePort(), await findFreePort()]
  const text = await readFile(join(repository, 'deploy/nginx.conf'), 'utf8')
  const site = fillIn(change(text), [
    ['10.0.0.11:3000', replicas[0]],
    ['10.0.0.12:3000', replicas[1]],
    ['listen 80;', `listen 127.0.0.1:${plainPort};`],
    ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
    ['/etc/ssl/parley/fullchain.pem', join(folder, 'cert.pem')],
    ['/etc/ssl/parley/privkey.pem', join(folder, 'key.pem')],
    ['/var/log/nginx/parley.log', join(folder, 'access.log')],
    ['/var/log/nginx/parley-errors.log', join(folder, 'errors.log')],
  ])
  const scratch = ['proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`)
  const whole = `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
    events { worker_connections 512; }
    http { access_log off; client_body_temp_path ${folder}/bodies; ${scratch.join(' ')} ${around}
    ${site} }`
  await writeFile(join(folder, 'nginx.conf'), whole)
  const command = [getProgram('nginx'), '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  const { child, said } = await startIn(folder, command, /using the "epoll" event method/, {})
  const readIfThere = (name: string) => readFile(join(folder, name), 'utf8').catch(() => '')
  return toProxy(port, folder, child, async () => {
    return said() + (await readIfThere('access.log')) + (await readIfThere('errors.log'))
  })
}

/** Starts Caddy with `deploy/Caddyfile`. */
export async function startCaddy(certificate: Certificate, options: ProxyOptions): Promise<RunningProxy> {
  const { replicas, change = (text) => text } = options
  const folder = await makeProxyFolder(certificate)
  const port = await findFreePort()
  const text = await readFile(join(repository, 'deploy/Caddyfile'), 'utf8')
  const site = fillIn(change(text), [
    ['\tgrace_period 30s', '\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 30s'],
    ['\tlog\n', `\tlog\n\ttls ${folder}/cert.pem ${folder}/key.pem\n`],
  ])
  const path = join(folder, 'Caddyfile')
  await writeFile(path, site)
  const env = {
    HOME: folder,
    PARLEY_SITE: `https://127.0.0.1:${port}`,
    PARLEY_REPLICAS: replicas.join(' '),
  }
  const command = [getProgram('caddy'), 'run', '--config', path, '--adapter', 'caddyfile']
  const { child, said } = await startIn(folder, command, /serving initial configuration/, env)
  return toProxy(port, folder, child, async () => said())
}
