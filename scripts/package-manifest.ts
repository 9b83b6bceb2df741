/** The package.json of the package that is published: what of the checkout's own is for those who install it, and where its entries are. */
import { OLDEST_NODE_MAJOR } from '../src/lib/node-version.ts'

/** What is read of the checkout's package.json. */
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

/** The checkout's scripts, development packages and own Node stay behind: whoever installs the package has a Node. ADR 0035. */
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
      './openapi.json': './openapi.json',
      './package.json': './package.json',
    },
    // What pages import may be dropped where it is not used; the service's own files start things.
    sideEffects: ['./src/**'],
    publishConfig: { access: 'public', provenance: true },
    dependencies: own.dependencies,
    peerDependencies: own.peerDependencies,
    peerDependenciesMeta: own.peerDependenciesMeta,
  }
}

/** Where the types of its entries lie. */
export function listTypes({ exports }: ReturnType<typeof renderManifest>): string[] {
  return Object.values(exports).flatMap((one) => (typeof one === 'string' ? [] : [one.types]))
}
