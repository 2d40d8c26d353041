/** Packs the package as it would be published, and installs it, and the tools to try it with, once for all tests. */
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { pack, run } from './run.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const here = fileURLToPath(new URL('..', import.meta.url))

declare module 'vitest' {
  interface ProvidedContext {
    /** Has the tools in its `node_modules`, where the projects below it find them. */
    workspace: string
    /** A project in the workspace that installed the package and nothing else. */
    bare: string
    /** Another that has msw as well. */
    withMsw: string
    tarball: string
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const workspace = await mkdtemp(join(tmpdir(), 'notification-subscriber-consumers-'))
  const [tarball] = await Promise.all([pack(workspace), installTools(workspace)])
  const bare = await install(tarball, join(workspace, 'bare'))
  const withMsw = join(workspace, 'with-msw')
  await cp(bare, withMsw, { recursive: true })
  await symlink(join(root, 'node_modules/msw'), join(withMsw, 'node_modules/msw'))
  provide('workspace', workspace)
  provide('tarball', tarball)
  provide('bare', bare)
  provide('withMsw', withMsw)
  return () => rm(workspace, { recursive: true })
}

async function installTools(folder: string): Promise<void> {
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    await cp(join(here, file), join(folder, file))
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder)
}

async function install(tarball: string, folder: string): Promise<string> {
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }))
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', tarball], folder)
  return folder
}
