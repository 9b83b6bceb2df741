/** The types of programs.mjs, which is plain JavaScript because the set-up uses it before TypeScript can run. */
export const testPrograms: Record<
  'chromium' | 'ffmpeg' | 'bubblewrap' | 'postgres' | 'initdb' | 'redis' | 'nginx' | 'caddy' | 'openssl',
  { commands: string[]; debianPackage: string; isOptional?: boolean }
>
export function canRun(path: string): boolean
export function findCommand(commands: string[]): string | undefined
