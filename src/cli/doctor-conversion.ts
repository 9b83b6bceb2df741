/** The checks of `parley doctor` that look at what uploads are converted with. */
import type { Config } from '../config.ts'
import { createConverter } from '../conversion/conversion.ts'
import { type Programs, readVersion } from '../conversion/programs.ts'
import { systemClock } from '../system-clock.ts'
import { type Finding, ok, reasonOf, warn } from './finding.ts'

const SEE = 'see docs/conversion.md'

/** The programs that make videos fit for the web, and whether they run apart from everything else. Decision: 9. */
export async function checkConversion(config: Config): Promise<Finding[]> {
  const { programs, isIsolated } = await createConverter({ config, clock: systemClock })
  return [await checkFfmpeg(programs), await checkIsolation(programs, isIsolated)]
}

async function checkFfmpeg({ ffmpeg, ffprobe }: Programs): Promise<Finding> {
  const check = 'ffmpeg'
  if (ffmpeg === undefined || ffprobe === undefined) {
    const missing = ffmpeg === undefined ? 'ffmpeg' : 'ffprobe'
    const command = '`apt-get install ffmpeg`'
    return warn(check, `there is no ${missing}, so videos are served as they were uploaded; ${command} helps`)
  }
  try {
    return ok(check, `${await readVersion(ffmpeg)} at ${ffmpeg}`)
  } catch (error) {
    return warn(check, `${ffmpeg} does not run (${reasonOf(error)}); install it again`)
  }
}

async function checkIsolation(programs: Programs, isIsolated: () => Promise<boolean>): Promise<Finding> {
  const check = 'isolation'
  if (await isIsolated()) return ok(check, `uploads are converted without network, under ${programs.bwrap}`)
  if (programs.bwrap !== undefined) {
    const message = 'bubblewrap may not make namespaces on this machine, so conversions are limited less'
    return warn(check, `${message}; ${SEE}`)
  }
  if (programs.prlimit === undefined)
    return warn(check, `there is neither bubblewrap nor prlimit, so conversions are not limited; ${SEE}`)
  return warn(
    check,
    'there is no bubblewrap, so conversions are limited less; `apt-get install bubblewrap` helps',
  )
}
