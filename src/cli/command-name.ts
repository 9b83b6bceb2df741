/** How the operator types the command: from a checkout, or where the package is installed. */
export const commandName = import.meta.url.endsWith('.ts') ? 'npm run parley --' : 'npx parley'
