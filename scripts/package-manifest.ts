/** Renders the npm package's package.json. */
import { OLDEST_NODE_MAJOR } from '../src/lib/node-version.ts'

/** The fields that are copied from the checkout's package.json. */
export interface OwnManifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, unknown>>
}

const entry = (path: string, types = path) => ({ types: `./${types}.d.ts`, default: `./${path}.js` })

/** Renders the manifest without the checkout's scripts, development packages and bundled Node (ADR 0035). */
export function renderManifest(own: OwnManifest) {
  const { name, version, description, license } = own
  return {
    ...{ name, version, description, license },
    type: 'module',
    engines: { node: `>=${OLDEST_NODE_MAJOR}` },
    bin: { parley: './src/parley.js' },
    exports: {
      '.': entry('src/index'),
      './client': entry('client/rpc/index'),
      './react': entry('dist/widget/react', 'dist/widget/types/react/index'),
      './widget': { types: './dist/widget/types/loader/index.d.ts' },
      './openapi.json': './openapi.json',
      './package.json': './package.json',
    },
    // Lets bundlers drop unused browser modules, but not the service's modules.
    sideEffects: ['./src/**'],
    publishConfig: { access: 'public', provenance: true },
    dependencies: own.dependencies,
    peerDependencies: own.peerDependencies,
    peerDependenciesMeta: own.peerDependenciesMeta,
  }
}

/** Lists the paths of all entries' type files. */
export function listTypes({ exports }: ReturnType<typeof renderManifest>): string[] {
  return Object.values(exports).flatMap((one) => (typeof one === 'string' ? [] : [one.types]))
}
